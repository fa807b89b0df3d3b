/**
 * Kubelet fault tests: `node test/reliability/kubelets.ts [kills|disk|cut|hang ...]`, as root, with containerd. `kills`
 * kills the kubelet 30 times and containerd 10 times, under pods of all kinds. No container may be replaced, and
 * nothing may be left after the deletion. The other faults also run with upstream's kubelet, and the behaviour of both
 * is compared.
 */
import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'

import { whyNoContainerd } from '../integration/kubelet/containerd-bed.ts'
import { type KubeletBed, type Make, startKubeletBed } from '../upstream/kubelet-bed.ts'
import { FAULTS } from './kubelets/faults.ts'
import { kill } from './kubelets/kills.ts'

const { values, positionals } = parseArgs({
  options: {
    kubelets: { type: 'string', default: '30' },
    containerds: { type: 'string', default: '10' },
    'cut-seconds': { type: 'string', default: '600' },
    make: { type: 'string', multiple: true, default: ['ours', 'upstream'] },
  },
  allowPositionals: true,
})
/** Of the log of a kubelet, in bytes. */
const LAST_WORDS = 6000
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const fault = await whyNoContainerd()
if (fault !== undefined) throw new Error(`There can be no containers here: ${fault}`)

/** The differences between our kubelet's report and upstream's. */
async function compare(bed: KubeletBed, name: string): Promise<string[]> {
  const told = new Map<string, string[]>()
  for (const make of values.make as Make[]) {
    const lines = (await FAULTS[name]?.(bed, make, { cutSeconds: Number(values['cut-seconds']), say })) ?? []
    for (const line of lines) say(`  ${make}: ${line}`)
    told.set(make, lines)
    await bed.ask('DELETE', `/api/v1/nodes/${bed.node}`)
    await bed.ask('DELETE', '/api/v1/namespaces/default/events')
  }
  const [ours = [], reference = ours] = told.values()
  const differing = ours.filter((line) => !reference.includes(line))
  return differing.map((line) => `${name}: ours says what upstream's does not: ${line}`)
}

async function main(): Promise<number> {
  await using closing = new AsyncDisposableStack()
  const bed = await startKubeletBed('tried', closing)
  const isWanted = (name: string): boolean => positionals.length === 0 || positionals.includes(name)
  const faults: string[] = []
  try {
    if (isWanted('kills')) {
      const counts = { kubelets: Number(values.kubelets), containerds: Number(values.containerds) }
      faults.push(...(await kill(bed, { ...counts, say })))
    }
    for (const name of Object.keys(FAULTS).filter(isWanted)) faults.push(...(await compare(bed, name)))
  } catch (error) {
    faults.push(String(error), (await readFile(`${bed.folder}/ours.log`, 'utf8').catch(String)).slice(-LAST_WORDS))
  }
  for (const each of faults) say(each)
  say(faults.length === 0 ? 'all checks passed' : `${faults.length} checks failed`)
  return faults.length === 0 ? 0 : 1
}

process.exitCode = await main()
