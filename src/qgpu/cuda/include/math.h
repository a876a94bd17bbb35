// Floating-point functions are declared in the device header already; the machine has none.
#pragma once
