/** The entry point of the thread that owns a history file. */
import { parentPort, workerData } from 'node:worker_threads'

import { runHistory } from './history-thread.ts'
import type { ThreadSettings } from './messages.ts'

if (parentPort !== null) runHistory(parentPort, workerData as ThreadSettings)
