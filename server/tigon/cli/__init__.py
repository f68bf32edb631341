"""What people type: `tigon init`, `demo`, `doctor`, `review`, `tasks`, `report`. Never on the path of
`tigon serve`."""
