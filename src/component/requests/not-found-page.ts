/** The plain-text 404 response for paths outside of all served APIs. */
import type { WholeAnswer } from './call.ts'

export function notFoundPage(): WholeAnswer {
  return {
    status: 404,
    contentType: 'text/plain; charset=utf-8',
    body: '404 page not found\n',
    headers: { 'X-Content-Type-Options': 'nosniff' },
  }
}
