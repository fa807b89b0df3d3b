/**
 * Parses RBAC rules from one line of text: `read create: pods pods/log @ core = web ? SomeGate`. A line has verbs, then
 * resources or paths, then optionally groups, names and a feature gate.
 */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { compareText } from '#lib/go/text.ts'

/** Rights by role. A role whose rights all depend on disabled gates does not exist. */
export type RoleTable = Readonly<Record<string, readonly string[]>>

const READ: readonly string[] = ['get', 'list', 'watch']
const WRITE: readonly string[] = ['create', 'delete', 'deletecollection', 'patch', 'update']

/** The rules whose gates are enabled. Throws for malformed text. */
export function parseRights(texts: readonly string[], isEnabled: (gate: string) => boolean): PolicyRule[] {
  return texts.flatMap((text) => {
    const { gate, rule } = parseRight(text)
    return gate === undefined || isEnabled(gate) ? [rule] : []
  })
}

function parseRight(text: string): { readonly rule: PolicyRule; readonly gate: string | undefined } {
  const [, verbText, targetText, groupText = 'core', nameText, gate] =
    /^([^:]+): ([^@=?]+?)(?: @ ([^=?]+?))?(?: = ([^?]+?))?(?: \? (\w+))?$/.exec(text) ?? []
  if (verbText === undefined || targetText === undefined) throw new Error(`Cannot read the right "${text}"`)
  const verbs = verbText.split(' ').flatMap((verb) => (verb === 'read' ? READ : verb === 'write' ? WRITE : [verb]))
  const targets = targetText.split(' ')
  const base = { verbs: verbs.sort(compareText) }
  if (targets[0]?.startsWith('/') === true) return { rule: { ...base, nonResourceURLs: targets }, gate }
  const apiGroups = groupText.split(' ').map((group) => (group === 'core' ? '' : group))
  const names = nameText === undefined ? {} : { resourceNames: nameText.split(' ') }
  return { rule: { ...base, apiGroups, resources: targets, ...names }, gate }
}
