/**
 * The credentials of a Windows worker: each component has its own, with the rights that it needs. Those of the
 * administrator are used by the set-up alone; no service and no variable of the machine names their file.
 */
import type { Step } from '../../steps.ts'
import type { Component, SetupContext } from './context.ts'
import { kubeconfigDocument } from './documents.ts'
import type { SetupPlaces } from './settings.ts'

type SetupStep = Step<SetupContext>

/** The groups of Windows by their identifiers, because their names are translated: Administrators and SYSTEM. */
const OWNERS = ['*S-1-5-32-544:(OI)(CI)F', '*S-1-5-18:(OI)(CI)F']

/** What the mark says; another text makes the step run again. */
const ACCESS = 'administrators and system'

const folderAccess: SetupStep = {
  name: 'access to the base folder',
  isDone: async ({ host, places }) => (await host.files.read(places.accessMark)) === ACCESS,
  async take({ host, settings, places }) {
    await host.processes.output('icacls.exe', [settings.baseDir, '/inheritance:r', '/grant:r', ...OWNERS])
    await host.files.write(places.accessMark, ACCESS)
  },
  async undo({ host, settings, places }) {
    if (!(await host.files.exists(places.accessMark))) return
    await host.processes.output('icacls.exe', [settings.baseDir, '/reset'])
    await host.files.remove(places.accessMark)
  },
}

/** Whose certificates the kubelet accepts. */
const clientAuthority: SetupStep = {
  name: 'authority of clients',
  isDone: async ({ host, places, cluster }) =>
    (await host.files.read(places.clientAuthority)) === (await cluster.clientAuthority()),
  take: async ({ host, places, cluster }) => host.files.write(places.clientAuthority, await cluster.clientAuthority()),
  undo: ({ host, places }) => host.files.remove(places.clientAuthority),
}

/** Good for a day, and only for requesting a certificate; the kubelet writes its own kubeconfig then. */
const bootstrap: SetupStep = {
  name: 'bootstrap kubeconfig of kubelet',
  isDone: ({ host, places }) => host.files.exists(places.kubeletKubeconfig),
  async take({ host, places, cluster }) {
    // One that runs has read a token that may be over.
    if ((await host.services.state('Kubelet')) === 'running') await host.services.stop('Kubelet')
    const text = kubeconfigDocument(await cluster.endpoint(), await cluster.joinToken())
    await host.files.write(places.bootstrapKubeconfig, text)
  },
  async undo({ host, places }) {
    await host.files.remove(places.bootstrapKubeconfig)
    await host.files.remove(places.kubeletKubeconfig)
    await host.files.empty(places.pki)
    await host.files.remove(places.pki)
  },
}

/** Of a ServiceAccount that only this machine uses, so that `reset` can revoke it. */
function component(name: Component, path: (places: SetupPlaces) => string): SetupStep {
  return {
    name: `kubeconfig of ${name}`,
    isDone: ({ host, places }) => host.files.exists(path(places)),
    async take({ host, places, cluster }) {
      const token = await cluster.componentToken(name, host.machineName)
      await host.files.write(path(places), kubeconfigDocument(await cluster.endpoint(), token))
    },
    async undo({ host, places, cluster }) {
      await cluster.revoke(name, host.machineName)
      await host.files.remove(path(places))
    },
  }
}

export const CREDENTIAL_STEPS: readonly SetupStep[] = [
  folderAccess,
  clientAuthority,
  bootstrap,
  component('kube-proxy', ({ kubeProxyKubeconfig }) => kubeProxyKubeconfig),
  component('flannel', ({ flannelKubeconfig }) => flannelKubeconfig),
]
