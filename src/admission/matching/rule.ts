/** Matches requests against the rules of webhooks and policies: operation, resource, scope and name. Pure. */
import type { Operation } from '#apiserver/registry/admission.ts'
import type { GroupVersionResource } from '#meta/kind.ts'

/** As in configurations; `resourceNames` only in policies. */
export interface ResourceRule {
  readonly operations?: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly apiVersions?: readonly string[]
  /** `pods`, `pods/log`, or with a star on either side of the slash. */
  readonly resources?: readonly string[]
  readonly scope?: string
  readonly resourceNames?: readonly string[]
}

/** A request in the form that rules match on. */
export interface RuleSubject extends GroupVersionResource {
  readonly operation: Operation
  readonly subresource: string
  /** Empty for cluster-scoped objects; a Namespace is in itself. */
  readonly namespace: string
  readonly name: string
}

export function matchesRule(rule: ResourceRule, subject: RuleSubject): boolean {
  return (
    isAmong(rule.operations, subject.operation) &&
    isAmong(rule.apiGroups, subject.group) &&
    isAmong(rule.apiVersions, subject.version) &&
    matchesResource(rule.resources, subject) &&
    matchesScope(rule.scope, subject) &&
    (rule.resourceNames === undefined || rule.resourceNames.length === 0 || rule.resourceNames.includes(subject.name))
  )
}

function isAmong(wanted: readonly string[] = [], value: string): boolean {
  return wanted.includes('*') || wanted.includes(value)
}

/**
 * A resource without a subresource matches only itself, and so does `*`; the subresource `*` matches all, also none.
 */
function matchesResource(wanted: readonly string[] = [], { resource, subresource }: RuleSubject): boolean {
  return wanted.some((text) => {
    const slash = text.indexOf('/')
    const own = slash < 0 ? text : text.slice(0, slash)
    const part = slash < 0 ? '' : text.slice(slash + 1)
    return (own === '*' || own === resource) && (part === '*' || part === subresource)
  })
}

/** Namespaces themselves are cluster-scoped. */
function matchesScope(scope: string | undefined, { group, resource, namespace }: RuleSubject): boolean {
  if (scope === undefined || scope === '*') return true
  const isCluster = namespace === '' || (group === '' && resource === 'namespaces')
  return isCluster === (scope === 'Cluster')
}
