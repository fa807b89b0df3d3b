/** The entry point of the writer and reader threads of the sqlite backend. */
import { parentPort, workerData } from 'node:worker_threads'

import type { ReaderSettings, WriterSettings } from './sqlite/messages.ts'
import { runReader } from './sqlite/reader-thread.ts'
import { runWriter } from './sqlite/writer-thread.ts'

const settings = workerData as WriterSettings | ReaderSettings

if (parentPort !== null) {
  if (settings.role === 'writer') runWriter(parentPort, settings)
  else runReader(parentPort, settings)
}
