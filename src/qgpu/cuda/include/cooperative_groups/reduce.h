// Reductions over cooperative groups, which the header of these has already.
#pragma once
#include "../cooperative_groups.h"
