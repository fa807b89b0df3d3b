import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type RequestInfo, requestInfoOf } from '#auth/request-info.ts'

import { createWatchCounts } from './watch-counts.ts'

function info(method: string, target: string): RequestInfo {
  const [path = '', text = ''] = target.split('?')
  return requestInfoOf(method, path, new URLSearchParams(text))
}

const watch = (target: string): RequestInfo => info('GET', `${target}${target.includes('?') ? '&' : '?'}watch=1`)

describe('number of watches that a write notifies', () => {
  it('includes watches of all namespaces, of the namespace, and of the object', () => {
    const counts = createWatchCounts()
    const ends = [
      '/api/v1/configmaps',
      '/api/v1/namespaces/a/configmaps',
      '/api/v1/namespaces/b/configmaps',
      '/api/v1/namespaces/a/configmaps?fieldSelector=metadata.name%3Dx',
      '/api/v1/namespaces/a/secrets',
    ].map((path) => counts.open(watch(path)))
    const count = (method: string, path: string): number => counts.interestedIn(info(method, path))
    assert.equal(count('PUT', '/api/v1/namespaces/a/configmaps/x'), 3)
    assert.equal(count('PUT', '/api/v1/namespaces/a/configmaps/y'), 2)
    assert.equal(count('POST', '/api/v1/namespaces/c/configmaps'), 1)
    assert.equal(count('POST', '/api/v1/nodes'), 0)
    for (const end of ends) end()
    assert.equal(count('PUT', '/api/v1/namespaces/a/configmaps/x'), 0)
  })

  it('excludes watches of the pods of one node', () => {
    const counts = createWatchCounts()
    counts.open(watch('/api/v1/pods?fieldSelector=spec.nodeName%3Dn1'))()
    const end = counts.open(watch('/api/v1/pods?fieldSelector=spec.nodeName%3Dn1'))
    counts.open(watch('/api/v1/pods?fieldSelector=spec.nodeName%3D'))
    counts.open(watch('/api/v1/pods?fieldSelector=spec.nodeName!%3Dn1'))
    assert.equal(counts.interestedIn(info('POST', '/api/v1/namespaces/a/pods')), 2)
    end()
    assert.equal(counts.interestedIn(info('POST', '/api/v1/namespaces/a/pods')), 2)
  })
})
