import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { StatusError } from '#meta/status.ts'

import { ConnectionError, ExitError, Failures, KubectlError, reportOf, withSource } from './errors.ts'

const missing = new StatusError({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  reason: 'NotFound',
  message: 'pods "x" not found',
  code: 404,
})

describe('error output of kubectl', () => {
  it('prefixes errors of the user with "error:" once', () => {
    assert.deepEqual(reportOf(new KubectlError('no')), { text: 'error: no\n', exitCode: 1 })
    assert.deepEqual(reportOf(new KubectlError('error: no')), { text: 'error: no\n', exitCode: 1 })
  })

  it('contains the reason of the server', () => {
    assert.equal(reportOf(missing).text, 'Error from server (NotFound): pods "x" not found\n')
  })

  it('has one line for each of several errors', () => {
    const both = new Failures([missing, new KubectlError('no')])
    assert.equal(reportOf(both).text, 'Error from server (NotFound): pods "x" not found\nno\n')
  })

  it('lists the causes of an invalid object', () => {
    const causes = [
      { field: 'spec.a', message: 'Required value' },
      { field: 'spec.b', message: 'Invalid value: 1' },
      { field: 'spec.a', message: 'Required value' },
    ]
    const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, reason: 'Invalid', code: 422 } as const
    const invalid = new StatusError({ ...status, details: { kind: 'Pod', name: 'x', causes } })
    const text = 'The Pod "x" is invalid: \n* spec.a: Required value\n* spec.b: Invalid value: 1\n'
    assert.equal(reportOf(invalid).text, text)
  })

  it('names the file of the object', () => {
    const { text } = reportOf(withSource('creating', 'a.yaml', missing))
    assert.equal(text, 'Error from server (NotFound): error when creating "a.yaml": pods "x" not found\n')
  })

  it('recognizes an unreachable server', () => {
    const refused = new ConnectionError('Get', 'https://h:1/api', 'dial tcp h:1: connect: connection refused')
    assert.equal(
      reportOf(refused).text,
      'The connection to the server h:1 was refused - did you specify the right host or port?\n',
    )
  })

  it('uses the exit code of ExitError', () => {
    assert.deepEqual(reportOf(new ExitError(7)), { text: '', exitCode: 7 })
  })
})
