// In cooperative_groups.h.
