import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { refusalOfRest, segmentsOf } from './request-path.ts'

describe('segmentsOf() for a request path', () => {
  const accepted: readonly (readonly [string, readonly string[]])[] = [
    ['/', ['']],
    ['/v3/clusters', ['v3', 'clusters']],
    ['/v3/users/a%20b', ['v3', 'users', 'a b']],
    ['/k8s/clusters/c-1/api/', ['k8s', 'clusters', 'c-1', 'api', '']],
    ['/v3/tokens/a%2Fb', ['v3', 'tokens', 'a/b']],
  ]
  for (const [path, segments] of accepted) it(`splits ${path}`, () => assert.deepEqual(segmentsOf(path), segments))

  const refused = [
    '',
    'v3',
    '//v3',
    '/v3//clusters',
    '/v3/%',
    '/v3/%zz',
    '/v3/../x',
    '/v3/%2e%2e/x',
    '/v3/.',
    '/a\\b',
    '/a%5cb',
    '/a%00',
    '/a%0d%0ab',
  ]
  for (const path of refused) it(`refuses ${JSON.stringify(path)}`, () => assert.ok('refused' in segmentsOf(path)))
})

describe('refusalOfRest() of a path that is proxied to a cluster', () => {
  const passed = [
    '',
    '/',
    '/api/v1/pods',
    '/api/v1/namespaces/a/services/b/proxy/x%20y',
    '/api/v1/pods?a=..%2f',
    '/a%2Fb',
    '/x/...',
  ]
  for (const path of passed) it(`accepts "${path}"`, () => assert.equal(refusalOfRest(path), undefined))

  const refused = [
    '/..',
    '/a/../b',
    '/%2e%2e/b',
    '/%252e%252e/b',
    '/a%2f..%2fb',
    '/a%5c..',
    '/a%2f%2fb',
    '/%25252525252e',
  ]
  for (const path of refused) it(`refuses "${path}"`, () => assert.notEqual(refusalOfRest(path), undefined))
})
