// Part of CUDA, all of it in the device header already.
#pragma once
