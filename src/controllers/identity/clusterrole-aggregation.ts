/**
 * ClusterRole aggregation: sets the rules of an aggregated role to the union of the selected roles' rules, ordered by
 * name. Uses server-side apply, so that other fields stay unchanged.
 */
import { type ClusterRole, ClusterRoles, type PolicyRule } from '#apis/rbac/v1.ts'
import { compareText } from '#lib/go/text.ts'
import { asSelector } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'
import { objectKey, semanticEqual } from '#meta/object.ts'
import type { Cache } from '#reconcile/cache.ts'
import { related, rule } from '#reconcile/controller.ts'

import { type Controller, defineController } from '../controller.ts'

const NAME = 'clusterrole-aggregation-controller'

export const clusterRoleAggregationController: Controller = defineController({
  name: NAME,
  aliases: ['clusterrole-aggregation'],
  // Any role may be selected by any aggregated role.
  watches: [related(ClusterRoles, (_role, cache) => aggregated(cache).map(objectKey))],
  rules: [rule('rbac.authorization.k8s.io', 'clusterroles', 'escalate get list patch update watch')],

  async reconcile(key, { cache, client, signal }) {
    const role = cache.get(ClusterRoles, key)
    if (role?.aggregationRule === undefined) return
    const rules = rulesOf(role, cache.list(ClusterRoles))
    if (semanticEqual(rules, role.rules)) return
    await client.apply(
      ClusterRoles,
      { metadata: { name: key }, ...(rules.length > 0 && { rules }) },
      { fieldManager: NAME, force: true, signal },
    )
  },
})

function aggregated(cache: Cache): ClusterRole[] {
  return [...cache.list(ClusterRoles)].filter(({ aggregationRule }) => aggregationRule !== undefined)
}

export function rulesOf(role: ClusterRole, all: Iterable<ClusterRole>): PolicyRule[] {
  const others = [...all].filter(({ metadata }) => metadata.name !== role.metadata.name)
  const byName = others.sort((a, b) => compareText(a.metadata.name ?? '', b.metadata.name ?? ''))
  const rules: PolicyRule[] = []
  for (const each of role.aggregationRule?.clusterRoleSelectors ?? []) {
    const selector = asSelector(each)
    const chosen = byName.filter(({ metadata }) => matchesLabels(selector, metadata.labels))
    for (const one of chosen.flatMap((other) => other.rules ?? [])) {
      if (!rules.some((known) => semanticEqual(known, one))) rules.push(one)
    }
  }
  return rules
}
