import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Kind, resourceFor } from '#apis/kinds.ts'
import { requestInfoOf } from '#auth/request-info.ts'

import { type Routing, routingOf } from './routing.ts'

const ALL = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** By path: the routed methods; `none` if the path does not exist. */
const PATHS: readonly (readonly [path: string, methods: string])[] = [
  ['/api/v1/pods', 'GET'],
  ['/api/v1/pods?watch=1', 'GET'],
  ['/api/v1/pods?fieldSelector=metadata.name%3Da', 'GET'],
  ['/api/v1/pods/a', 'none'],
  ['/api/v1/namespaces/x/pods', 'GET POST DELETE'],
  ['/api/v1/namespaces/x/pods?fieldSelector=metadata.name%3Da', 'GET POST DELETE'],
  ['/api/v1/namespaces/x/pods/a', 'GET PUT PATCH DELETE'],
  ['/api/v1/watch/pods', 'GET'],
  ['/api/v1/watch/namespaces/x/pods/a', 'GET'],
  ['/api/v1/nodes', 'GET POST DELETE'],
  ['/api/v1/nodes/a', 'GET PUT PATCH DELETE'],
  ['/api/v1/nodes/a/proxy', 'GET HEAD POST PUT PATCH DELETE'],
  ['/api/v1/watch/nodes/a', 'GET'],
  ['/api/v1/namespaces/x/nodes', 'none'],
  ['/api/v1/namespaces/x/nodes/a', 'none'],
  ['/api/v1/namespaces', 'GET POST DELETE'],
  ['/api/v1/namespaces/x', 'GET PUT PATCH DELETE'],
]

function kindOf(resource: string): Kind {
  const kind = resourceFor({ group: '', version: 'v1', resource })
  assert.ok(kind !== undefined)
  return kind
}

function routing(method: string, path: string): Routing {
  const { pathname, searchParams } = new URL(path, 'https://x')
  const info = requestInfoOf(method, pathname, searchParams)
  return routingOf(method, info, kindOf(info.resource))
}

describe('request routing', () => {
  for (const [path, methods] of PATHS) {
    it(`allows for ${path} the methods: ${methods}`, () => {
      const found = ALL.map((method) => [method, routing(method, path)] as const)
      if (methods === 'none') return assert.ok(found.every(([, outcome]) => outcome === 'no-path'))
      const routed = found.filter(([, outcome]) => outcome === 'routed').map(([method]) => method)
      assert.equal(routed.join(' '), methods)
      assert.ok(found.every(([, outcome]) => outcome !== 'no-path'))
    })
  }

  it('accepts a POST to the path of a single custom resource', () => {
    const info = requestInfoOf('POST', '/api/v1/namespaces/x/pods/a', new URLSearchParams())
    assert.equal(routingOf('POST', info, kindOf('pods')), 'no-method')
    assert.equal(routingOf('POST', info, kindOf('pods'), true), 'routed')
  })
})
