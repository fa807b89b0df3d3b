import assert from 'node:assert/strict'
import { test } from 'node:test'

import { readKnownHosts } from './known-hosts.ts'

test("readKnownHosts() returns fingerprints in ssh-keygen's format", () => {
  const key = 'AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl'
  const text = `# a comment\n[127.0.0.1]:2222 ssh-ed25519 ${key}\n\nbroken\n`
  assert.deepEqual(readKnownHosts(text), [
    {
      host: '[127.0.0.1]:2222',
      type: 'ssh-ed25519',
      fingerprint: 'SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU',
    },
  ])
})
