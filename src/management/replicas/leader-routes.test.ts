import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { needsLeader } from './leader-routes.ts'

describe('needsLeader() for routes of the management server', () => {
  const rows: readonly (readonly [string, string, boolean])[] = [
    ['POST', '/v3-public/login', true],
    ['GET', '/v3-public/oidc/:provider/login', true],
    ['GET', '/v3-public/oidc/:provider/callback', true],
    ['GET', '/v3-public/providers', false],
    ['POST', '/v3/users', true],
    ['PATCH', '/v3/users/:name', true],
    ['GET', '/v3/users', false],
    ['POST', '/v3/me/password', true],
    ['GET', '/v3/me', false],
    ['POST', '/v3/logout', false],
    ['POST', '/v3/clusters', false],
    ['DELETE', '/v3/clusters/:cluster', true],
    ['POST', '/v3-public/first-login', true],
    ['GET', '/first-login', false],
    ['DELETE', '/v3/members/:member', true],
    ['PATCH', '/v3/roles/:role', true],
    ['*', '/k8s/clusters/:cluster/*', false],
    ['GET', '/v3/connect/register', false],
  ]
  for (const [method, path, isNeeded] of rows) {
    it(`${isNeeded ? 'sends' : 'does not send'} ${method} ${path} to the leader`, () => {
      assert.equal(needsLeader({ method, path }), isNeeded)
    })
  }
})
