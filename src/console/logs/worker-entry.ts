/** The worker that holds the log lines of a page. */
import { sleep } from '../browser/time.ts'
import { LogServer } from './log-server.ts'
import type { ToLogWorker } from './messages.ts'

const server = new LogServer({
  fetch: (path, init) => fetch(path, init),
  sleep: (ms) => sleep(ms),
  post: (message) => postMessage(message),
})

addEventListener('message', ({ data }: MessageEvent<ToLogWorker>) => server.handle(data))
