/** Who is who, and who may what: the authorizer, which needs no objects to begin with, and the authenticator, which does. */
import { authenticatorsFor, type Authenticator, createAuthenticator } from '#apiserver/authenticators/index.ts'
import { createLiveObjects } from '#apiserver/authenticators/live-objects.ts'
import type { Authorizer } from '#apiserver/authorizers/authorizer.ts'
import { createAuthorizer, createChainAuthorizer } from '#apiserver/authorizers/index.ts'
import { followNodeGraph } from '#apiserver/authorizers/node/follow-node.ts'
import { NodeGraph } from '#apiserver/authorizers/node/graph.ts'
import { createNodeAuthorizer } from '#apiserver/authorizers/node/node.ts'
import { followRbac } from '#apiserver/authorizers/rbac/follow-rbac.ts'
import { RbacIndex } from '#apiserver/authorizers/rbac/rbac.ts'
import { nodeRules } from '#apiserver/bootstrap/roles.ts'
import { createUseMarker } from '#apiserver/bootstrap/token-use.ts'
import type { Registry } from '#apiserver/registry/registry.ts'

import type { LoadedAuthentication } from './authentication.ts'
import { loadAuthorization } from './authorization.ts'
import type { Site } from './site.ts'

export interface Authorization {
  readonly authorizer: Authorizer
  readonly roles: RbacIndex
  /** From now on what is stored decides. */
  follow(registry: Registry): void
}

/** Throws ProgramError for files that cannot be used. */
export async function openAuthorization(site: Site): Promise<Authorization> {
  const { isEnabled, plan, settings, metrics } = site
  const roles = new RbacIndex()
  const graph = new NodeGraph()
  const node = createNodeAuthorizer({ graph, rules: nodeRules(isEnabled), isEnabled })
  const parts = { rbac: roles, node, metrics }
  const { authorizers, webhook } = await loadAuthorization(settings, site)
  const authorizer =
    authorizers === undefined
      ? createAuthorizer(plan.authorizationModes, { ...parts, ...(webhook !== undefined && { webhook }) })
      : createChainAuthorizer(authorizers, parts)
  return {
    authorizer,
    roles,
    follow(registry) {
      followRbac(registry, roles)
      followNodeGraph(registry, graph)
    },
  }
}

export function openAuthenticator(
  { clock, log, metrics, plan: { apiAudiences } }: Site,
  registry: Registry,
  { authentication }: LoadedAuthentication,
): Authenticator {
  const objects = createLiveObjects(registry)
  const onRefusal = (why: string): void => log.v(2)?.info('Unable to authenticate the request', { err: why })
  const markUse = createUseMarker(registry, (error) =>
    log.error(error, 'The use of a token from a secret was not noted'),
  )
  const parts = authenticatorsFor({ clock, objects, apiAudiences, markUse, metrics, ...authentication })
  return createAuthenticator({ ...parts, onRefusal })
}
