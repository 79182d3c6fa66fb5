"""Any namespace of the array API standard as a device."""
