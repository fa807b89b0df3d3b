import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Volume } from '#apis/core/v1.ts'

import { pluginOf } from './index.ts'

/** CVE-2024-10220, CVE-2025-1767: cloning runs code from the repository. */
test('gitRepo volumes are rejected with a message that names them', () => {
  const volume: Volume = { name: 'v', gitRepo: { repository: '/etc', directory: '.', revision: 'main' } }
  assert.throws(() => pluginOf(volume), /^Error: volumes of type gitRepo are not supported by this kubelet$/)
})
