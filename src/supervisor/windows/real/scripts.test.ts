import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'

import type { ServicePlan } from '../windows-host.ts'
import { checkPowerShell } from './powershell-grammar.fixture.ts'
import { powershellArgs, quoteArgument } from './powershell.ts'
import { SCRIPT_NAMES, scriptText, WRAPPER_SOURCE } from './scripts.ts'
import { windowsHost, wrapperLines } from './windows-host.ts'

const HOSTILE = `x'"; Remove-Item -Recurse C:\\ $(1) \`n "`

describe('PowerShell scripts of the supervisor', () => {
  for (const name of SCRIPT_NAMES)
    it(`are well-formed: ${name}`, () => assert.deepEqual(checkPowerShell(scriptText(name)), []))

  for (const name of ['setup', 'reset', 'logs'])
    it(`are well-formed: bin/${name}.ps1`, () => {
      const text = readFileSync(new URL(`../../../../bin/${name}.ps1`, import.meta.url), 'utf8')
      assert.deepEqual(checkPowerShell(text), [])
    })

  it('are checked by rules that detect errors in samples', () => {
    const cases: [string, RegExp][] = [
      [`Get-Item 'x`, /quote/],
      [`if ($in.a) { Get-Item 'x'`, /closed/],
      [`Get-Item 'x')`, /opened/],
      [`Get-Itme 'x'`, /Get-Itme/],
      [`Get-Item -Name $other`, /\$other/],
      [`Get-Item "a $($in.b)"`, /double quotes/],
      [`Invoke-Expression $in.text`, /Invoke-Expression/],
    ]
    for (const [text, complaint] of cases) assert.match(checkPowerShell(text).join('\n'), complaint, text)
  })

  it('pass their arguments as data, never as part of the script', async () => {
    const ran: { name: string; args: string[]; input: object }[] = []
    const host = windowsHost({
      clock: undefined as never,
      http: undefined as never,
      say: () => undefined,
      ended: () => undefined,
      shell: async (name, input) => {
        ran.push({ name, args: powershellArgs(name), input })
        return name === 'hns' ? '{"Success":true,"Output":[]}' : 'null'
      },
    })
    await host.services.start(HOSTILE)
    await host.services.state(HOSTILE)
    await host.firewall.allow({ name: HOSTILE, protocol: 'TCP', port: 1 })
    await host.environment.set(HOSTILE, HOSTILE)
    await host.environment.remove(HOSTILE)
    await host.hns('POST', '/networks', { Name: HOSTILE })
    await host.network.pods.list()
    assert.deepEqual(
      ran.map(({ name }) => name),
      ['service-start', 'service-state', 'firewall-allow', 'variable-set', 'variable-set', 'hns', 'hns'],
    )
    for (const { name, args } of ran) {
      assert.deepEqual(args.slice(0, -1), [
        '-NoLogo',
        '-NoProfile',
        '-NonInteractive',
        '-ExecutionPolicy',
        'Bypass',
        '-EncodedCommand',
      ])
      const text = Buffer.from(args.at(-1) ?? '', 'base64').toString('utf16le')
      assert.equal(text, scriptText(name as 'hns'))
    }
    assert.deepEqual(ran[5]?.input, { method: 'POST', path: '/networks', body: JSON.stringify({ Name: HOSTILE }) })
  })
})

describe('command line of a Windows process', () => {
  it('is quoted so that programs parse the same arguments', () => {
    const cases: [string, string][] = [
      ['--v=4', '--v=4'],
      ['', '""'],
      ['a b', '"a b"'],
      ['c:\\k\\', 'c:\\k\\'],
      ['c:\\my k\\', '"c:\\my k\\\\"'],
      ['say "hi"', '"say \\"hi\\""'],
      ['a\\"b', '"a\\\\\\"b"'],
    ]
    for (const [argument, quoted] of cases) assert.equal(quoteArgument(argument), quoted)
  })

  it('is passed to the service wrapper with its variables, line by line', () => {
    const plan: ServicePlan = {
      name: 'FlannelD',
      description: 'd',
      wrapper: 'c:\\k\\FlannelDSvc.exe',
      program: 'c:\\my k\\flanneld.exe',
      args: ['--iface=10.1.2.3', '--kubeconfig-file=c:\\my k\\kubeconfig'],
      env: { NODE_NAME: 'win-1' },
      logFile: 'c:\\k\\logs\\flanneld\\flanneldsvc.log',
    }
    assert.deepEqual(wrapperLines(plan), [
      'c:\\my k\\flanneld.exe',
      'c:\\k\\logs\\flanneld\\flanneldsvc.log',
      '--iface=10.1.2.3 "--kubeconfig-file=c:\\my k\\kubeconfig"',
      'NODE_NAME=win-1',
    ])
    assert.throws(() => wrapperLines({ ...plan, env: { A: 'x\nB=1' } }), /does not fit into one line/)
  })

  it('is run by a wrapper script with balanced braces', () => {
    const count = (mark: string): number => WRAPPER_SOURCE.split(mark).length
    assert.equal(count('{'), count('}'))
    assert.equal(count('('), count(')'))
  })
})
