/** The worker that holds all lists of a tab, so that the page itself holds only the rows that it shows. */
import { socketMessages } from '../browser/socket-messages.ts'
import { now, random, sleep } from '../browser/time.ts'
import { ListServer } from './list-server.ts'
import type { ToWorker } from './messages.ts'

const server = new ListServer({
  fetch: (path, init) => fetch(path, init),
  messages: socketMessages,
  sleep,
  random,
  now,
  post: (message) => postMessage(message),
})

addEventListener('message', ({ data }: MessageEvent<ToWorker>) => server.handle(data))
