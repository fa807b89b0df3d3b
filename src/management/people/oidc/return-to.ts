/**
 * Validates the page to which a browser returns after a log-in. Only paths of this server are accepted, so that no
 * link redirects users to another site.
 */
import { PAGE_PATH } from '#component/console/page-plan.ts'

/** Starts with one `/`; printable ASCII without `\`, which browsers take for `/`. */
const PATH = /^\/(?![/\\])[!-[\]-~]*$/
const MAX_CHARACTERS = 2048
const HOME = PAGE_PATH

/** The console for an absent path; undefined for one that is none or could lead elsewhere. */
export function returnPath(wanted: string | null): string | undefined {
  if (wanted === null || wanted === '') return HOME
  if (wanted.length > MAX_CHARACTERS || !PATH.test(wanted)) return undefined
  // The parser resolves `/.//evil.example` and removes what browsers ignore.
  const url = URL.parse(wanted, BASE)
  if (url === null || url.origin !== BASE || url.pathname.startsWith('//')) return undefined
  return url.pathname + url.search + url.hash
}

const BASE = 'https://server.invalid'
