import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { readingsOf, sendable, targetOf } from './proxy-target.ts'
import { type FilterFlags, filterOf, routeOf } from './proxying.ts'

const FLAGS = {
  'accept-paths': '^.*',
  'reject-paths': '^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach',
  'accept-hosts': '^localhost$,^127\\.0\\.0\\.1$,^\\[::1\\]$',
  'reject-methods': '^$',
}

/** True if a GET of the path passes; an unreadable path does not. */
function passes(
  path: string,
  flags: Partial<FilterFlags> = {},
  hosts: readonly string[] = ['localhost:8001'],
): boolean {
  const readings = readingsOf(path)
  return typeof readings !== 'string' && filterOf({ ...FLAGS, ...flags })({ method: 'GET', readings, hosts })
}

describe('request filter of kubectl proxy', () => {
  it('accepts hosts of this machine only', () => {
    assert.ok(passes('/api'))
    assert.ok(passes('/api', {}, ['127.0.0.1']))
    assert.ok(!passes('/api', {}, ['evil.example:8001']))
    assert.ok(!passes('/api', {}, ['localhost:8001', 'evil.example']))
    assert.ok(!passes('/api', {}, ['']))
  })

  it('rejects exec and attach by default', () => {
    assert.ok(!passes('/api/v1/namespaces/default/pods/x/exec'))
    assert.ok(!passes('/api/v1/namespaces/default/pods/x/attach'))
    assert.ok(passes('/api/v1/namespaces/default/pods/x/log'))
  })

  it('rejects the methods of --reject-methods', () => {
    const filter = filterOf({ ...FLAGS, 'reject-methods': 'POST,PUT' })
    const readings = { toAccept: ['/'], toReject: ['/'] }
    assert.ok(!filter({ method: 'POST', readings, hosts: ['localhost'] }))
    assert.ok(filter({ method: 'GET', readings, hosts: ['localhost'] }))
  })

  it('reports an invalid regular expression', () => {
    assert.throws(() => filterOf({ ...FLAGS, 'accept-paths': '[' }), /Error compiling re: error parsing regexp/)
  })

  const secrets = { 'reject-paths': '^/api/v1/secrets$,^/api/v1/namespaces/kube-system/' }
  const pods = { 'accept-paths': '^/api/v1/namespaces/default/' }

  it('accepts plain paths that --reject-paths does not match', () => {
    assert.ok(passes('/api/v1/pods', secrets))
    assert.ok(passes('/api/v1/namespaces/default/configmaps/secrets', secrets))
    assert.ok(passes('/api/v1/namespaces/default/pods/a%20b', pods))
    assert.ok(passes('/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node', secrets))
    assert.ok(passes('/api/v1/namespaces/default/', { 'accept-paths': '^/api/v1/namespaces/default/$' }))
  })

  const disguises: readonly (readonly [string, string])[] = [
    ['encoded letters', '/api/v1/%73ecrets'],
    ['letters encoded twice', '/api/v1/%2573ecrets'],
    ['encoded dots', '/api/v1/pods/%2e%2e/secrets'],
    ['one encoded dot', '/api/v1/pods/.%2E/secrets'],
    ['encoded dots after an encoded slash', '/api/v1/a%2fb/%2e%2e/secrets'],
    ['dots encoded twice', '/api/v1/pods/%252e%252e/secrets'],
    ['dots and letters encoded at different depths', '/api/v1/a%252fb/%2e%2e/%25252e/secrets'],
    ['a backslash', '/api/v1/pods/..\\secrets'],
    ['an encoded backslash', '/api/v1/pods%5c..%5csecrets'],
    ['encoded slashes', '/api%2fv1%2fsecrets'],
    ['an empty segment', '/api/v1%2f/secrets'],
    ['a single dot', '/api/v1/%2e/secrets'],
    ['parameters of a segment', '/api;x=1/v1;y/secrets;z'],
    ['parameters that hide dots', '/api/v1/pods/..;/secrets'],
    ['encoded parameters', '/api/v1/secrets%3bx'],
    ['a slash at the end', '/api/v1/secrets/'],
    ['an encoded slash at the end', '/api/v1/secrets%2f'],
    ['an encoded query', '/api/v1/secrets%3fa'],
    ['a fragment', '/api/v1/secrets#a'],
    ['an encoded line break', '/api/v1/secrets%0a'],
    ['dots above the root', '/%2e%2e/api/v1/secrets'],
    ['letters encoded nine times', `/api/v1/%${'25'.repeat(9)}73ecrets`],
  ]
  for (const [name, path] of disguises) {
    it(`rejects a path of --reject-paths written with ${name}`, () => assert.ok(!passes(path, secrets)))
  }

  const escapes = [
    '/api/v1/namespaces/default/%2e%2e/kube-system/secrets',
    '/api/v1/namespaces/default/..%2fkube-system/secrets',
    '/api/v1/namespaces/default/..\\kube-system/secrets',
    '/api/v1/namespaces/default/%252e%252e/kube-system/secrets',
    '/api/v1/namespaces/default/..;/kube-system/secrets',
    '/api/v1/namespaces/default/a%2fb/%2e%2e/%2e%2e/kube-system',
  ]
  for (const path of escapes) {
    it(`does not mistake ${path} for a path below the accepted one`, () => assert.ok(!passes(path, pods)))
  }
})

describe('readingsOf() for a path in kubectl proxy', () => {
  it('returns a plain path unchanged', () => {
    assert.deepEqual(readingsOf('/api/v1/pods'), { toAccept: ['/api/v1/pods'], toReject: ['/api/v1/pods'] })
  })

  it('decodes bytes of UTF-8, percent-encoded or not', () => {
    const expected = { toAccept: ['/ä'], toReject: ['/ä'] }
    assert.deepEqual(readingsOf('/%C3%A4'), expected)
    assert.deepEqual(readingsOf('/\u00c3\u00a4'), expected)
  })

  it('returns "malformed" for invalid percent encoding', () => assert.equal(readingsOf('/api/%zz'), 'malformed'))
})

describe('targetOf() for a request line in kubectl proxy', () => {
  it('splits a path from its query', () => {
    assert.deepEqual(targetOf('/api?a=/b?'), { path: '/api', query: '?a=/b?' })
    assert.deepEqual(targetOf('//evil.example/x'), { path: '//evil.example/x', query: '' })
  })

  it('takes the host of an absolute URL without its user', () => {
    assert.deepEqual(targetOf('http://localhost@evil.example:80/api?x'), {
      authority: 'evil.example:80',
      path: '/api',
      query: '?x',
    })
    assert.deepEqual(targetOf('HTTP://localhost'), { authority: 'localhost', path: '', query: '' })
  })

  it('returns undefined for a text that is neither a path nor an absolute URL', () => {
    for (const text of ['*', 'api', '', 'localhost:80']) assert.equal(targetOf(text), undefined)
  })
})

describe('sendable() for a path in kubectl proxy', () => {
  it('keeps percent encoding and encodes characters that no URL contains', () => {
    assert.equal(sendable('/a%2e%2e/b;c=1/%2F'), '/a%2e%2e/b;c=1/%2F')
    assert.equal(sendable('/a\\b#c'), '/a%5Cb%23c')
    assert.equal(sendable('/\u00c3\u00a4'), '/%C3%A4')
  })
})

describe('routeOf() for a request in kubectl proxy', () => {
  const route = (text: string, prefixes: Parameters<typeof routeOf>[1]): unknown => {
    const target = targetOf(text)
    assert.ok(target)
    return routeOf(target, prefixes)
  }

  it('removes the API prefix unless that is the path of the API itself', () => {
    assert.deepEqual(route('/api/v1?x=1', { api: '/' }), { to: 'api', path: '/api/v1', query: '?x=1' })
    assert.deepEqual(route('/custom/api', { api: '/custom/' }), { to: 'api', path: '/api', query: '' })
    assert.deepEqual(route('/api/v1', { api: '/api/' }), { to: 'api', path: '/api/v1', query: '' })
    assert.deepEqual(route('/other', { api: '/api/' }), { to: 'nowhere' })
  })

  it('prefers the longer of two matching prefixes', () => {
    assert.deepEqual(route('/static/a', { api: '/', files: '/static/' }), { to: 'files', path: 'a' })
  })

  it('redirects to the path without dot segments on this host', () => {
    assert.deepEqual(route('/x/../api?a', { api: '/' }), { to: 'clean', path: '/api?a' })
    assert.deepEqual(route('//api', { api: '/' }), { to: 'clean', path: '/api' })
    assert.deepEqual(route('http://localhost', { api: '/' }), { to: 'clean', path: '/' })
    assert.deepEqual(route('/x/..//\\evil.example', { api: '/' }), { to: 'clean', path: '/%5Cevil.example' })
  })
})
