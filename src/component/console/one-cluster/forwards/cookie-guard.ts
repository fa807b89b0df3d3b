/**
 * Refuses requests of browsers that carry a cookie of a console. Browsers send cookies of 127.0.0.1 to all its ports, so
 * a pod would get the session of users who open the port by that name.
 */

const COOKIE = /^cookie:[^\r\n]*\bhk-console-\d/im
const METHOD = /^[A-Z]{3,10} \S/

/** Whether the first bytes of a connection are the head of such a request. */
export function hasConsoleCookie(first: Buffer): boolean {
  const text = first.toString('latin1')
  return METHOD.test(text) && COOKIE.test(text)
}

/** The response to such a request. */
export function guardResponse(link: string): string {
  const body = `This request has the cookie of the console, which pods must not get.\nOpen ${link}\n`
  const head = [
    'HTTP/1.1 421 Misdirected Request',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${body.length}`,
    'Cache-Control: no-store',
    'Connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
