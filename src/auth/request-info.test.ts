import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type RequestInfo, requestInfoOf } from './request-info.ts'

const TABLE: readonly [request: string, expected: Partial<RequestInfo>][] = [
  ['GET /api/v1/pods', { verb: 'list', resource: 'pods', namespace: '', group: '', version: 'v1' }],
  ['GET /api/v1/pods?watch=true', { verb: 'watch' }],
  ['GET /api/v1/pods?watch=1', { verb: 'watch' }],
  ['GET /api/v1/pods?watch=false', { verb: 'list' }],
  ['GET /api/v1/pods?watch', { verb: 'watch' }],
  ['GET /api/v1/namespaces/a/pods/x', { verb: 'get', namespace: 'a', resource: 'pods', name: 'x' }],
  ['GET /api/v1/namespaces/a/pods/x?watch=1', { verb: 'get' }],
  ['HEAD /api/v1/namespaces/a/pods/x', { verb: 'get' }],
  ['GET /api/v1/namespaces/a', { verb: 'get', namespace: 'a', resource: 'namespaces', name: 'a', subresource: '' }],
  ['PUT /api/v1/namespaces/a/status', { verb: 'update', resource: 'namespaces', name: 'a', subresource: 'status' }],
  ['PUT /api/v1/namespaces/a/finalize', { resource: 'namespaces', name: 'a', subresource: 'finalize', namespace: 'a' }],
  ['GET /api/v1/namespaces', { verb: 'list', resource: 'namespaces', namespace: '' }],
  ['POST /api/v1/namespaces/a/pods/x/eviction', { verb: 'create', subresource: 'eviction', name: 'x' }],
  [
    'PATCH /apis/apps/v1/namespaces/a/deployments/d/scale',
    { verb: 'patch', group: 'apps', resource: 'deployments', subresource: 'scale' },
  ],
  ['DELETE /apis/apps/v1/namespaces/a/deployments', { verb: 'deletecollection', resource: 'deployments' }],
  ['GET /api/v1/namespaces/a/pods/x/proxy/some/path', { subresource: 'proxy', rest: ['some', 'path'] }],
  ['GET /api/v1/watch/namespaces/a/pods', { verb: 'watch', namespace: 'a', resource: 'pods' }],
  ['GET /api/v1/pods?fieldSelector=metadata.name%3Dx', { verb: 'list', name: 'x' }],
  ['GET /api/v1/pods?fieldSelector=metadata.name!%3Dx', { verb: 'list', name: '' }],
  ['DELETE /api/v1/pods?fieldSelector=metadata.name%3Dx', { verb: 'deletecollection', name: '' }],
  ['GET /apis', { isResource: false, verb: 'get', path: '/apis' }],
  ['GET /apis/apps', { isResource: false }],
  ['GET /apis/apps/v1', { isResource: false, group: 'apps', version: 'v1' }],
  ['GET /healthz', { isResource: false, verb: 'get', path: '/healthz' }],
  ['POST /api/v1/namespaces/a/pods', { verb: 'create', name: '' }],
  ['GET /api/v1/namespaces/a/services/https:web:443/proxy/x', { name: 'https:web:443', subresource: 'proxy' }],
  ['GET /api/v1/nodes/n%2Fx', { name: 'n/x' }],
  ['GET /api/v1/nodes/%zz', { name: '%zz' }],
  ['BREW /api/v1/pods', { verb: '', resource: 'pods' }],
  ['constructor /api/v1/pods', { verb: '', resource: 'pods' }],
  ['__proto__ /api/v1/pods/x', { verb: '', resource: 'pods' }],
]

describe('requestInfoOf()', () => {
  for (const [request, expected] of TABLE) {
    it(`parses ${request}`, () => {
      const [method = '', url = ''] = request.split(' ')
      const [path = '', query] = url.split('?')
      const info = requestInfoOf(method, path, query === undefined ? undefined : new URLSearchParams(query))
      for (const [name, value] of Object.entries(expected))
        assert.deepEqual(info[name as keyof RequestInfo], value, name)
    })
  }
})
