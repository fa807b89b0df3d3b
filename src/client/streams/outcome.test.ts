import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { failureOf, RemoteExitError } from './outcome.ts'

function reported(status: object): Error | undefined {
  return failureOf(Buffer.from(JSON.stringify(status)))
}

const exit = (message: string): object => ({
  status: 'Failure',
  reason: 'NonZeroExitCode',
  details: { causes: [{ reason: 'ExitCode', message }] },
})

describe('failureOf() for a remote command', () => {
  it('treats an empty Status and a Status of Success as success', () => {
    assert.equal(failureOf(Buffer.alloc(0)), undefined)
    assert.equal(reported({ status: 'Success' }), undefined)
  })

  it('returns the exit code of the command', () => {
    const failure = reported(exit('3'))
    assert.ok(failure instanceof RemoteExitError)
    assert.equal(failure.exitCode, 3)
    assert.equal(failure.message, 'command terminated with exit code 3')
  })

  it('returns errors that occurred between client and command', () => {
    assert.equal(reported({ status: 'Failure', message: 'no such container' })?.message, 'no such container')
  })

  it('rejects invalid exit codes', () => {
    for (const code of ['256', '-1', '1e2', '']) assert.match(reported(exit(code))?.message ?? '', /invalid exit code/)
    assert.match(reported({ status: 'Failure', reason: 'NonZeroExitCode' })?.message ?? '', /details must be set/)
    assert.match(failureOf(Buffer.from('<html>'))?.message ?? '', /error stream protocol error/)
    assert.match(reported({ status: 'Odd' })?.message ?? '', /unknown error/)
  })
})
