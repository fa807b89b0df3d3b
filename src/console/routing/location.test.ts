/** Tests that the addresses of the console are read as they were written. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { formatLocation, type Location, parseLocation } from './location.ts'

const pods = { group: '', version: 'v1', plural: 'pods' }
const widgets = { group: 'example.com', version: 'v1beta1', plural: 'widgets' }

const CASES: readonly (readonly [url: string, location: Location])[] = [
  ['/ui/', { page: { page: 'clusters' }, query: {} }],
  ['/ui/c/local', { page: { page: 'cluster', cluster: 'local' }, query: {} }],
  [
    '/ui/c/local/core/v1/pods?ns=a&q=x%3Dy+-z',
    { page: { page: 'list', cluster: 'local', kind: pods }, query: { ns: 'a', q: 'x=y -z' } },
  ],
  [
    '/ui/c/local/example.com/v1beta1/widgets/_/w%2F1/yaml',
    { page: { page: 'object', cluster: 'local', kind: widgets, namespace: '', name: 'w/1', tab: 'yaml' }, query: {} },
  ],
  [
    '/ui/c/local/core/v1/pods/kube-system/dns-1',
    {
      page: { page: 'object', cluster: 'local', kind: pods, namespace: 'kube-system', name: 'dns-1', tab: '' },
      query: {},
    },
  ],
  ['/ui/c/local/create?ns=a', { page: { page: 'cluster-view', cluster: 'local', view: 'create' }, query: { ns: 'a' } }],
  ['/ui/users', { page: { page: 'server-view', view: 'users', item: '' }, query: {} }],
  ['/ui/users/u-1', { page: { page: 'server-view', view: 'users', item: 'u-1' }, query: {} }],
]

describe('locations of the console', () => {
  for (const [url, location] of CASES) {
    it(`reads and writes ${url}`, () => {
      const [path = '', search = ''] = url.split('?')
      assert.deepEqual(parseLocation(path, search), location)
      assert.equal(formatLocation(location), url)
    })
  }

  it('keeps a segment that is not encoded correctly', () => {
    assert.deepEqual(parseLocation('/ui/c/%zz', '').page, { page: 'cluster', cluster: '%zz' })
  })
})
