import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { filterOf, routeOf } from './proxying.ts'

const FLAGS = {
  'accept-paths': '^.*',
  'reject-paths': '^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach',
  'accept-hosts': '^localhost$,^127\\.0\\.0\\.1$,^\\[::1\\]$',
  'reject-methods': '^$',
}

describe('what the proxy lets through', () => {
  const filter = filterOf(FLAGS)
  const get = (path: string, host = 'localhost:8001'): boolean => filter({ method: 'GET', path, host })

  it('is what comes from this machine and takes nobody into a container', () => {
    assert.ok(get('/api'))
    assert.ok(get('/api', '127.0.0.1'))
    assert.ok(!get('/api', 'evil.example:8001'))
    assert.ok(!get('/api/v1/namespaces/default/pods/x/exec'))
    assert.ok(!filterOf({ ...FLAGS, 'reject-methods': 'POST,PUT' })({ method: 'POST', path: '/', host: 'localhost' }))
  })

  it('is refused when it is no expression', () => {
    assert.throws(() => filterOf({ ...FLAGS, 'accept-paths': '[' }), /Error compiling re: error parsing regexp/)
  })
})

describe('where the proxy sends a request', () => {
  it('is the API, without a prefix that is ours', () => {
    assert.deepEqual(routeOf('/api/v1?x=1', { api: '/' }), { to: 'api', path: '/api/v1?x=1' })
    assert.deepEqual(routeOf('/custom/api', { api: '/custom/' }), { to: 'api', path: '/api' })
    assert.deepEqual(routeOf('/api/v1', { api: '/api/' }), { to: 'api', path: '/api/v1' })
    assert.deepEqual(routeOf('/other', { api: '/api/' }), { to: 'nowhere' })
  })

  it('is the directory for what is longer', () => {
    assert.deepEqual(routeOf('/static/a', { api: '/', files: '/static/' }), { to: 'files', path: 'a' })
  })

  it('is the same without dots, so that no filter is walked around', () => {
    assert.deepEqual(routeOf('/x/../api?a', { api: '/' }), { to: 'clean', path: '/api?a' })
    assert.deepEqual(routeOf('//api', { api: '/' }), { to: 'clean', path: '/api' })
  })
})
