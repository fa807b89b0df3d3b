import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { AuthorizerValue, whenAnswered, ResourceCheckValue, type Authorize, type Check } from './authorizer.ts'
import { createEnvironment } from './environment.ts'
import { opaque } from './type.ts'

const environment = createEnvironment({
  variables: {
    authorizer: opaque('kubernetes.authorization.Authorizer'),
    'authorizer.requestResource': opaque('kubernetes.authorization.ResourceCheck'),
  },
})

async function run(source: string, authorize: Authorize): Promise<{ value: unknown; spent: number }> {
  const compiled = environment.compile(source)
  assert.ok(compiled.issues === undefined, JSON.stringify(compiled.issues))
  const authorizer = new AuthorizerValue(authorize)
  const resource = new ResourceCheckValue(authorizer, { group: 'apps', resource: 'deployments', namespace: 'x' })
  const budget = { limit: 1_000_000, spent: 0 }
  const variables = { authorizer, 'authorizer.requestResource': resource }
  return { value: await whenAnswered(() => compiled.program().evaluate(variables, budget)), spent: budget.spent }
}

const checks =
  "authorizer.group('apps').resource('deployments').subresource('scale').namespace('ns').name('n')" +
  ".fieldSelector('a=b').check('update').allowed() && authorizer.path('/healthz').check('get').allowed()"

describe('CEL variable authorizer', () => {
  it('passes the attributes of each check to the authorizer', async () => {
    const received: Check[] = []
    const authorize: Authorize = (check) => (received.push(check), { allowed: true, reason: '' })
    assert.equal((await run(checks, authorize)).value, true)
    const subject = { kind: 'requester' }
    assert.deepEqual(received, [
      {
        kind: 'resource',
        subject,
        verb: 'update',
        group: 'apps',
        resource: 'deployments',
        subresource: 'scale',
        namespace: 'ns',
        name: 'n',
        fieldSelector: 'a=b',
        labelSelector: '',
      },
      { kind: 'path', subject, verb: 'get', path: '/healthz' },
    ])
  })

  it('may be asynchronous, and calls and charges each check once', async () => {
    const now = await run(checks, () => ({ allowed: true, reason: '' }))
    let received = 0
    const later = await run(checks, async () => {
      received++
      return { allowed: true, reason: '' }
    })
    assert.deepEqual(later, now)
    assert.equal(received, 2)
    assert.ok(now.spent > 700_000)
  })

  it('checks a service account, and the resource of the request', async () => {
    const received: Check[] = []
    const authorize: Authorize = (check) => (received.push(check), { allowed: false, reason: 'no', error: 'broken' })
    const source =
      "authorizer.serviceAccount('ns', 'sa').path('/x').check('get').reason() + authorizer.requestResource.check('get').error()"
    assert.equal((await run(source, authorize)).value, 'nobroken')
    assert.deepEqual(received[0]?.subject, { kind: 'serviceAccount', namespace: 'ns', name: 'sa' })
    assert.equal(received[1]?.kind, 'resource')
  })

  it('rejects invalid service account names', async () => {
    await assert.rejects(
      run("authorizer.serviceAccount('N', 'sa').path('/x').check('get').allowed()", () => assert.fail()),
      {
        message: 'Invalid service account namespace',
      },
    )
  })

  it('fails at the third check of an expression because of its cost', async () => {
    const third = ["'a'", "'b'", "'c'"].map((verb) => `authorizer.path('/').check(${verb}).allowed()`).join(' && ')
    await assert.rejects(
      run(third, () => ({ allowed: true, reason: '' })),
      {
        message: 'operation cancelled: actual cost limit exceeded',
      },
    )
  })
})
