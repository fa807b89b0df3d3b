/** The answer to what is no path of any API that is served: not a Status, but plain text. */
import type { WholeAnswer } from '../call.ts'

export function notFoundPage(): WholeAnswer {
  return {
    status: 404,
    contentType: 'text/plain; charset=utf-8',
    body: '404 page not found\n',
    headers: { 'X-Content-Type-Options': 'nosniff' },
  }
}
