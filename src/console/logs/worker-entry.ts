/** The worker that holds the log lines of a page. */
import { socketMessages } from '../browser/socket-messages.ts'
import { sleep } from '../browser/time.ts'
import { LogServer } from './log-server.ts'
import type { ToLogWorker } from './messages.ts'

const server = new LogServer({
  fetch: (path, init) => fetch(path, init),
  messages: socketMessages,
  sleep: (ms) => sleep(ms),
  post: (message) => postMessage(message),
})

addEventListener('message', ({ data }: MessageEvent<ToLogWorker>) => server.handle(data))
