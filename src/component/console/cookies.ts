/** Reads cookies of a request. */

/** Every value of the cookie with that name in the header `Cookie`: one, unless an attacker has set another. */
export function cookieValues(header: string, name: string): string[] {
  return header.split(';').flatMap((part) => {
    const at = part.indexOf('=')
    return at >= 0 && part.slice(0, at).trim() === name ? [part.slice(at + 1).trim()] : []
  })
}
