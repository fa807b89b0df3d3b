/**
 * Runs upstream's e2e tests of NetworkPolicy ([Feature:NetworkPolicy], no conformance tests): `node
 * test/upstream/network-policies.ts`. Runs as root against `hyperkube up` with containers. `--focus REGEXP` selects
 * tests. SCTP tests are skipped if the kernel lacks SCTP. Exits with 1 if a test fails; leaves nothing on the machine.
 */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

import { endWithSuite } from '../conformance/suite.ts'
import { runLabelled } from './labelled-tests.ts'

const { values: options } = parseArgs({
  options: { focus: { type: 'string' }, procs: { type: 'string' } },
})
const hasSctp = /^SCTP /m.test(readFileSync('/proc/net/protocols', 'utf8'))

endWithSuite()
process.exitCode = await runLabelled({
  label: 'Feature:NetworkPolicy',
  images: ['agnhost'],
  procs: Number(options.procs ?? 1),
  isChosen: (name) =>
    (hasSctp || !name.includes('[Feature:SCTPConnectivity]')) && new RegExp(options.focus ?? '').test(name),
})
