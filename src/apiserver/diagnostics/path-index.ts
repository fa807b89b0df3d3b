/** `/`: the index of all paths that are not resources (`kubectl get --raw /`). */
import type { HealthCheck } from '#component/pages/health.ts'
import type { Answer, Call } from '#component/requests/call.ts'

import type { AnnouncedGroup } from '../aggregated.ts'

const FIXED = [
  '/.well-known/openid-configuration',
  '/api',
  '/apis',
  '/apis/',
  '/metrics',
  '/metrics/slis',
  '/openapi/v2',
  '/openapi/v3',
  '/openapi/v3/',
  '/openid/v1/jwks',
  '/version',
]

/** Sorted. `isEnabled` selects the pages behind gates. */
export function listPaths(
  groups: readonly AnnouncedGroup[],
  checks: readonly HealthCheck[],
  isEnabled: (gate: string) => boolean,
): readonly string[] {
  const gated = Object.entries(GATED).flatMap(([gate, path]) => (isEnabled(gate) ? [path] : []))
  const paths = [...FIXED, ...gated, ...groups.flatMap(pathsOfGroup), ...checks.flatMap(pathsOfCheck)]
  return [...new Set(paths)].sort()
}

const GATED = { ComponentFlagz: '/flagz', ComponentStatusz: '/statusz' }

/** Undefined for all other paths. */
export function createPathIndex(paths: () => readonly string[]): (call: Call) => Answer | undefined {
  return ({ info, method }) => {
    if ((info.path !== '/' && info.path !== '/index.html') || method !== 'GET') return undefined
    return { status: 200, contentType: 'application/json', body: JSON.stringify({ paths: paths() }, undefined, 2) }
  }
}

function pathsOfGroup({ name, versions }: AnnouncedGroup): string[] {
  const root = name === '' ? '/api' : `/apis/${name}`
  return versions.length === 0 ? [] : [root, ...versions.map(({ version }) => `${root}/${version}`)]
}

function pathsOfCheck({ name, on }: HealthCheck): string[] {
  return on.flatMap((path) => [`/${path}`, `/${path}/${name}`])
}
