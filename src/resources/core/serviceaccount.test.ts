import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { serviceAccount } from './serviceaccount.ts'
import { trialOf } from './trial.suite.ts'

const trial = trialOf(serviceAccount)
const metadata = { name: 'sa', namespace: 'ns' }

describe('ServiceAccount', () => {
  it('contains only the names of its secrets', () => {
    const sent = { metadata, secrets: [{ name: 's', namespace: 'other', kind: 'Secret' }, {}] }
    assert.deepEqual(trial.create(sent).object.secrets, [{ name: 's' }, {}])
    assert.deepEqual(trial.update(sent, { metadata }).object.secrets, [{ name: 's' }, {}])
  })

  it('warns once about a deprecated annotation', () => {
    const annotated = { metadata: { ...metadata, annotations: { 'kubernetes.io/enforce-mountable-secrets': 'true' } } }
    const warning =
      'metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets'
    assert.deepEqual(trial.create(annotated).warnings, [warning])
    assert.deepEqual(trial.update(annotated, { metadata }).warnings, [warning])
    assert.deepEqual(trial.update(annotated, annotated).warnings, [])
  })
})
