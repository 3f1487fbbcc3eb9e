// Which options go together with a training algorithm of the file.
#pragma once

#include "import/import.h"

namespace sgtc {

/// Errors for options that a file's own training algorithm leaves no choice in, and for several
/// micro-batches or replicas when its update reads what differs between them. Nothing for other
/// files.
void check_algorithm(const TrainingAlgorithm& algorithm, const ImportOptions& options,
                     Diagnostics& diagnostics);

}  // namespace sgtc
