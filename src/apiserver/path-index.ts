/** `/`: every path that is no resource, for people who look around (`kubectl get --raw /`). */
import type { ServedGroup } from '#apis/kinds.ts'

import type { Answer, Call } from './call.ts'
import type { HealthCheck } from './health.ts'

const FIXED = [
  '/.well-known/openid-configuration',
  '/api',
  '/apis',
  '/apis/',
  '/metrics',
  '/openapi/v2',
  '/openapi/v3',
  '/openapi/v3/',
  '/openid/v1/jwks',
  '/version',
]

/** Undefined for all other paths. */
export function createPathIndex(
  groups: () => readonly ServedGroup[],
  checks: () => readonly HealthCheck[],
): (call: Call) => Answer | undefined {
  return ({ info, method }) => {
    if ((info.path !== '/' && info.path !== '/index.html') || method !== 'GET') return undefined
    const paths = [...FIXED, ...groups().flatMap(pathsOfGroup), ...checks().flatMap(pathsOfCheck)]
    const body = JSON.stringify({ paths: [...new Set(paths)].sort() }, undefined, 2)
    return { status: 200, contentType: 'application/json', body }
  }
}

function pathsOfGroup({ name, versions }: ServedGroup): string[] {
  const root = name === '' ? '/api' : `/apis/${name}`
  return versions.length === 0 ? [] : [root, ...versions.map(({ version }) => `${root}/${version}`)]
}

function pathsOfCheck({ name, on }: HealthCheck): string[] {
  return on.flatMap((path) => [`/${path}`, `/${path}/${name}`])
}
