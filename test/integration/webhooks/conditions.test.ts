/** Tests match conditions of webhooks: valid expressions, and the requests they select. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'

import { CONFIG_MAPS, configMap, type HookedPlane, startHookedPlane } from './hooked-plane.ts'

type Json = Record<string, unknown>

describe('match conditions of webhooks', () => {
  let hooked: HookedPlane
  let count = 0
  before(async () => {
    hooked = await startHookedPlane()
    hooked.respond('/x', () => ({ allowed: true }))
  })
  after(() => hooked[Symbol.asyncDispose]())
  afterEach(() => hooked.reset())

  const configure = (expressions: readonly string[], more: Json = {}): ReturnType<HookedPlane['configure']> =>
    hooked.configure('validating', 'w', [
      {
        name: 'x.ex.io',
        matchConditions: expressions.map((expression, at) => ({ name: `c${at}`, expression })),
        ...more,
      },
    ])
  /** The response to the creation of a ConfigMap, and whether the webhook was called. */
  const trying = async (expressions: readonly string[], more: Json = {}): Promise<readonly [Json, boolean]> => {
    await hooked.reset()
    const { status, text } = await configure(expressions, more)
    assert.equal(status, 201, text)
    const answer = (await hooked.request('POST', CONFIG_MAPS, configMap(`c${count++}`))).json()
    return [answer, hooked.requests('/x').length > 0]
  }
  const isAsked = async (...expressions: readonly string[]): Promise<boolean> => {
    const [{ kind, message }, asked] = await trying(expressions)
    assert.equal(kind, 'ConfigMap', String(message))
    return asked
  }

  it('select a request if all are true', async () => {
    assert.equal(await isAsked('true', "object.data.a == '1'"), true)
    assert.equal(await isAsked('true', "object.data.a == '2'"), false)
    assert.equal(await isAsked("request.operation == 'CREATE' && request.resource.resource == 'configmaps'"), true)
    assert.equal(await isAsked("request.userInfo.groups.exists(g, g == 'system:masters')"), true)
    assert.equal(await isAsked('oldObject == null && namespaceObject == null && !request.dryRun'), true)
  })

  it('may use the CEL variable authorizer', async () => {
    assert.equal(await isAsked("authorizer.group('').resource('pods').check('create').allowed()"), true)
    assert.equal(await isAsked("authorizer.requestResource.check('create').allowed()"), true)
    assert.equal(
      await isAsked("authorizer.serviceAccount('default', 'x').path('/secret').check('get').allowed()"),
      false,
    )
  })

  it('reject or skip the request by failurePolicy if one fails to evaluate, unless another is false', async () => {
    const failing = "object.data.zz == 'x'"
    const [refusal, asked] = await trying([failing, 'true'])
    const why = `expression '${failing}' resulted in error: no such key: zz`
    assert.deepEqual(
      [refusal['code'], refusal['reason'], refusal['message'], asked],
      [403, 'Forbidden', `configmaps "c${count - 1}" is forbidden: ${why}`, false],
    )
    const [both] = await trying([failing, failing.replace('x', 'y')])
    assert.match(String(both['message']), /forbidden: \[expression .*: zz, expression .*: zz\]$/)
    assert.equal(await isAsked(failing, 'false'), false)
    const [passed, isPassed] = await trying([failing], { failurePolicy: 'Ignore' })
    assert.deepEqual([passed['kind'], isPassed], ['ConfigMap', false])
  })

  it('are compiled when the configuration is written', async () => {
    const refused = async (...expressions: readonly string[]): Promise<string> =>
      String((await configure(expressions)).json()['message'])
    const prefix =
      'ValidatingWebhookConfiguration.admissionregistration.k8s.io "w" is invalid: webhooks[0].matchConditions'
    assert.equal(await refused('1'), `${prefix}[0].expression: Invalid value: "1": must evaluate to bool but got int`)
    assert.match(
      await refused('object.'),
      /\[0\]\.expression: Invalid value: "object\.": compilation failed: ERROR: <input>:1:8: /,
    )
    assert.match(await refused('params.x'), /compilation failed: ERROR: <input>:1:1: undeclared reference to 'params'/)
    assert.match(await refused(...Array.from({ length: 65 }, () => 'true')), /Too many: 65: must have at most 64 items/)
  })

  it('have metrics', async () => {
    await trying(['false'], { name: 'x.ex.io' })
    await trying(['object.data.zz == "x"'])
    const { text } = await hooked.request('GET', '/metrics')
    const labels = 'kind="webhook",name="x.ex.io",operation="CREATE",type="validate"'
    for (const name of ['evaluation_errors_total', 'exclusions_total', 'evaluation_seconds_count']) {
      assert.ok(text.includes(`apiserver_admission_match_condition_${name}{${labels}}`), name)
    }
  })
})
