import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Volume } from '#apis/core/v1.ts'

import { pluginOf } from './index.ts'

/** CVE-2024-10220, CVE-2025-1767: who clones runs what the repository says. */
test('volumes that are cloned from a repository are refused by name', () => {
  const volume: Volume = { name: 'v', gitRepo: { repository: '/etc', directory: '.', revision: 'main' } }
  assert.throws(() => pluginOf(volume), /^Error: volumes of type gitRepo are not supported by this kubelet$/)
})
