import assert from 'node:assert/strict'
import { test } from 'node:test'

import { GrpcError } from '#lib/grpc/status.ts'

import { pullFault, pullTexts } from './pull-errors.ts'

test('pullFault() returns the reason in the runtime’s error, or else ErrImagePull', () => {
  assert.deepEqual(pullFault('r.io/a:1', 'failed to pull'), { reason: 'ErrImagePull', message: 'failed to pull' })
  assert.deepEqual(pullFault('r.io/a:1', 'RegistryUnavailable: timeout'), {
    reason: 'RegistryUnavailable',
    message: 'image pull failed for r.io/a:1 because the registry is unavailable: timeout',
  })
  assert.deepEqual(pullFault('r.io/a:1', 'SignatureValidationFailed'), {
    reason: 'SignatureValidationFailed',
    message: 'image pull failed for r.io/a:1 because the signature validation failed',
  })
})

test('pullTexts() lists each distinct image pull error once', () => {
  const [one, other] = [new GrpcError('unknown', 'no'), new GrpcError('notFound', 'never heard')]
  assert.equal(pullTexts([one]), 'no')
  assert.equal(pullTexts([one, one]), 'no')
  assert.equal(pullTexts([one, other]), '[no, rpc error: code = NotFound desc = never heard]')
})
