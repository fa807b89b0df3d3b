/**
 * The table of all CEL libraries, in the order of upstream's base environment, with the Kubernetes version that
 * introduced each.
 */
import type { Library } from '../library.ts'
import { authz, authzSelectors } from './authz.ts'
import { comprehensions } from './comprehensions.ts'
import { format } from './format.ts'
import { jsonPatch } from './json-patch.ts'
import { kubernetesLists } from './kubernetes-lists.ts'
import { lists } from './lists.ts'
import { cidr, ip } from './network.ts'
import { optionals } from './optionals.ts'
import { quantity } from './quantity.ts'
import { regex } from './regex.ts'
import { semver } from './semver.ts'
import { sets } from './sets.ts'
import { standard } from './standard.ts'
import { strings } from './strings.ts'
import { urls } from './urls.ts'

/** By the minor version of Kubernetes 1 that has it first. */
const introduced: readonly (readonly [minor: number, library: Library])[] = [
  [0, standard],
  [0, urls],
  [0, regex],
  [0, kubernetesLists],
  [27, authz],
  [28, optionals],
  [28, quantity],
  [29, strings],
  [29, sets],
  [30, ip],
  [30, cidr],
  [31, format],
  [31, authzSelectors],
  [32, comprehensions],
  [33, semver],
  [34, lists],
]

/** The libraries of Kubernetes 1.`minor`. */
export function librariesOf(minor: number): Library[] {
  return introduced.filter(([since]) => since <= minor).map(([, library]) => library)
}

/** Everything that Kubernetes 1.36 has wherever it takes expressions. */
export const baseLibraries: readonly Library[] = librariesOf(36)

/** An additional library of mutating policies. */
export { jsonPatch }
