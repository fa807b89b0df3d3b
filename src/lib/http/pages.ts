/** Serves health and metrics pages of a program on a port without TLS. */
import type { Clock } from '../clock.ts'
import type { Logger } from '../log/log.ts'
import { ProgramError } from '../program.ts'
import { type Exchange, PLAIN_TEXT } from './exchange.ts'
import { createHttpServer } from './server.ts'

export interface PagesOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly closing: AsyncDisposableStack
  /** Whether a port that cannot be had ends the program. */
  readonly isFatal: boolean
}

type Page = () => { readonly status?: number; readonly type?: string; readonly body: string }

/** `host:port`; empty: does not listen. Throws ProgramError. */
export async function servePages(
  address: string,
  { clock, log, closing, isFatal }: PagesOptions,
  pages: Readonly<Record<string, Page>>,
): Promise<void> {
  if (address === '') return
  const serve = (exchange: Exchange): Promise<void> => {
    const [path = ''] = exchange.path.split('?')
    const page = Object.hasOwn(pages, path) ? pages[path]?.() : undefined
    if (page === undefined) exchange.respond(404, PLAIN_TEXT, '404 page not found\n')
    else {
      const { status = 200, type = 'text/plain; charset=utf-8', body } = page
      exchange.respond(status, ['Content-Type', type, 'X-Content-Type-Options', 'nosniff'], Buffer.from(body))
    }
    return Promise.resolve()
  }
  const server = createHttpServer({ serve, clock, onError: (error) => log.error(error, 'Failed to serve page') })
  const at = address.lastIndexOf(':')
  const host = address.slice(0, at).replaceAll(/[[\]]/g, '')
  try {
    await server.listen({ host, port: Number(address.slice(at + 1)) })
    closing.defer(() => server.drain(0))
  } catch (cause) {
    if (isFatal) throw new ProgramError(`failed to listen on ${address}: ${(cause as Error).message}`, { cause })
    log.error(cause, 'Failed to listen for health and metrics requests', { address })
  }
}
