import os

import interpreted  # noqa: F401  activates
import torch


def test_the_cpu_answers_as_a_device_does():
    properties = torch.cpu.get_device_properties(0)

    assert properties.multi_processor_count == os.cpu_count()
    assert properties.total_memory == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
