/**
 * Builds the API server's authorizer and authenticator. The authorizer exists before the storage can be read; the
 * authenticator needs stored objects, such as ServiceAccounts and token Secrets.
 */
import { createLiveObjects } from '#apiserver/auth/live-objects.ts'
import { followNodeGraph } from '#apiserver/auth/node-graph-follower.ts'
import { followRbac } from '#apiserver/auth/rbac-follower.ts'
import { nodeRules } from '#apiserver/bootstrap/roles.ts'
import { createUseMarker } from '#apiserver/bootstrap/token-use.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { authenticatorsFor, type Authenticator, createAuthenticator } from '#auth/authenticators/index.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import { createAuthorizer, createChainAuthorizer } from '#auth/authorizers/index.ts'
import { NodeGraph } from '#auth/authorizers/node/graph.ts'
import { createNodeAuthorizer } from '#auth/authorizers/node/node.ts'
import { RbacIndex } from '#auth/authorizers/rbac/rbac.ts'

import type { LoadedAuthentication } from './authentication.ts'
import { loadAuthorization } from './authorization.ts'
import type { Environment } from './environment.ts'

export interface Authorization {
  readonly authorizer: Authorizer
  readonly roles: RbacIndex
  /** Starts to follow the stored objects. */
  follow(registry: Registry): void
}

/** Throws ProgramError for unusable files. */
export async function openAuthorization(environment: Environment): Promise<Authorization> {
  const { isEnabled, plan, settings, metrics } = environment
  const roles = new RbacIndex()
  const graph = new NodeGraph()
  const node = createNodeAuthorizer({ graph, rules: nodeRules(isEnabled), isEnabled })
  const parts = { rbac: roles, node, metrics }
  const { authorizers, webhook } = await loadAuthorization(settings, environment)
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
  { clock, log, metrics, plan: { apiAudiences } }: Environment,
  registry: Registry,
  { authentication }: LoadedAuthentication,
): Authenticator {
  const objects = createLiveObjects(registry)
  const onRefusal = (why: string): void => log.v(2)?.info('Unable to authenticate the request', { err: why })
  const markUse = createUseMarker(registry, (error) =>
    log.error(error, 'Failed to record the last use of a token Secret'),
  )
  const parts = authenticatorsFor({ clock, objects, apiAudiences, markUse, metrics, ...authentication })
  return createAuthenticator({ ...parts, onRefusal })
}
