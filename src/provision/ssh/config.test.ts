import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { sshConfig } from './config.ts'

const SETTINGS = {
  target: { address: '10.0.0.1', port: 22, user: 'ubuntu', keyFile: '/home/me/my key' },
  knownHostsFile: '/x/known_hosts',
  hasPassphrase: false,
  connectSeconds: 15,
}

describe('sshConfig()', () => {
  it('quotes host names, paths and users', () => {
    const text = sshConfig(SETTINGS)
    assert.match(text, /^ {2}HostName "10\.0\.0\.1"$/m)
    assert.match(text, /^ {2}IdentityFile "\/home\/me\/my key"$/m)
    assert.match(text, /^ {2}IdentityAgent none$/m)
    assert.match(text, /^ {2}StrictHostKeyChecking accept-new$/m)
    assert.doesNotMatch(text, /ProxyJump/)
  })

  it('uses the bastion host with its SSH key', () => {
    const bastion = { address: 'jump', port: 2222, user: 'me', keyFile: '/jump' }
    const text = sshConfig({ ...SETTINGS, bastion })
    assert.match(text, /^Host bastion\n {2}HostName "jump"\n {2}Port 2222/m)
    assert.match(text, /^ {2}ProxyJump bastion$/m)
    assert.match(text, /^ {2}HostKeyAlias "\[jump\]:2222"$/m)
  })

  it('rejects values that would end a quoted value', () => {
    for (const user of ['a"b', 'a\nHost *', '-oProxyCommand=x', ''])
      assert.throws(() => sshConfig({ ...SETTINGS, target: { ...SETTINGS.target, user } }), /cannot be part/)
  })
})
