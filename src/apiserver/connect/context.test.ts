import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { requestInfoOf } from '#auth/request-info.ts'
import type { Call } from '#component/requests/call.ts'
import { badRequestError } from '#meta/status-errors.ts'

import type { View } from '../handlers/view.ts'
import type { Admission, Attributes } from '../registry/admission.ts'
import { admitConnect } from './context.ts'

const user = { name: 'ann', uid: '', groups: [], extra: {} }

const callOf = (method: string, target: string): Call => {
  const [path = '', query = ''] = target.split('?')
  const info = requestInfoOf(method, path, undefined)
  return { info, query: new URLSearchParams(query), user, warn: () => undefined, header: () => '' } as unknown as Call
}

const EXEC = '/api/v1/namespaces/a/pods/b/exec'

describe('admission of exec, attach and port-forward', () => {
  const viewOf = (admission: Admission): View =>
    ({ resource: { kind: { plural: 'pods', namespaced: true } }, services: { admission } }) as unknown as View

  it('receives the connect options as an object', async () => {
    const seen: Attributes[] = []
    const admission: Admission = {
      mutate: (attributes) => Promise.resolve(void seen.push(attributes)),
      validate: (attributes) => Promise.resolve(void seen.push(attributes)),
    }
    await admitConnect(callOf('POST', EXEC), viewOf(admission), 'PodExecOptions', { command: ['ls'], stdin: true })
    assert.equal(seen.length, 2)
    const [{ operation, subresource, name, namespace, object, oldObject } = {} as Attributes] = seen
    assert.deepEqual([operation, subresource, namespace, name], ['CONNECT', 'exec', 'a', 'b'])
    assert.deepEqual(object, { kind: 'PodExecOptions', apiVersion: 'v1', command: ['ls'], stdin: true })
    assert.equal(oldObject, undefined)
  })

  it('can refuse the connection, and does not run for a dry run', async () => {
    const refuse = (): Promise<never> => Promise.reject(badRequestError('not today'))
    const view = viewOf({ mutate: () => Promise.resolve(), validate: refuse })
    await assert.rejects(admitConnect(callOf('POST', EXEC), view, 'PodExecOptions', {}), /not today/)
    const dry = admitConnect(callOf('POST', `${EXEC}?dryRun=All`), view, 'PodExecOptions', {})
    await assert.rejects(dry, /dryRun is not supported/)
  })
})
