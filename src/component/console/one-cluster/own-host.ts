/** Checks the header Host, so that no name of another site that resolves to this machine reaches the console. */

/** Loopback as browsers name it. */
const NAMES = ['127.0.0.1', 'localhost', '[::1]']

export function isOwnHost(authority: string, port: number): boolean {
  return NAMES.some((name) => authority.toLowerCase() === (port === 80 ? name : `${name}:${port}`))
}
