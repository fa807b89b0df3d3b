/** The OpenAPI paths above the group versions: discovery, the version, and the keys for ServiceAccount tokens. */
import type { ServedGroup } from '#apis/kinds.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

import { type ApiPath, discoveryOperation, groupId, type Operation } from './operations.ts'

export interface RootPath extends ApiPath {
  /** The name of its OpenAPI v3 document. */
  readonly document: string
}

const meta = (kind: string): GroupVersionKind => ({ group: '', version: 'v1', kind })

/** A kind without a group: its schema is `versionSchema`. */
export const VERSION_INFO: GroupVersionKind = { group: '', version: '', kind: 'version.Info' }

const text = (id: string, produces: string): Operation => ({
  method: 'get',
  id,
  parameters: [],
  answer: 'text',
  statuses: [200],
  produces: [produces],
})

export function rootPaths(groups: readonly ServedGroup[]): RootPath[] {
  const named = groups.filter(({ name, versions }) => name !== '' && versions.length > 0)
  const version: Operation = {
    ...discoveryOperation('getCodeVersion', VERSION_INFO),
    produces: ['application/json'],
  }
  const keys = 'getServiceAccountIssuerOpenIDKeyset'
  return [
    path('.well-known/openid-configuration', 'WellKnown', [
      text('getServiceAccountIssuerOpenIDConfiguration', 'application/json'),
    ]),
    path('api', 'core', [discoveryOperation('getCoreAPIVersions', meta('APIVersions'))]),
    path('apis', 'apis', [discoveryOperation('getAPIVersions', meta('APIGroupList'))]),
    ...named.map(({ name }) => {
      const id = groupId(name)
      const operation = `get${id.charAt(0).toUpperCase()}${id.slice(1)}APIGroup`
      return path(`apis/${name}`, id, [discoveryOperation(operation, meta('APIGroup'))])
    }),
    path('openid/v1/jwks', 'openid', [text(keys, 'application/jwk-set+json')]),
    path('version', 'version', [version]),
  ]
}

function path(document: string, tag: string, operations: readonly Operation[]): RootPath {
  return { document, path: `/${document}/`, tag, operations }
}
