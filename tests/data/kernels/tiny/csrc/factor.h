#pragma once

constexpr float FACTOR = 2.0f;
