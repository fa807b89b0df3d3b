/** kubectl set image: sets images of containers. */
import { type Command, defineCommand } from '../command.ts'
import { failuresOf, KubectlError } from '../errors.ts'
import { dryRunOf, SELECTOR_FLAG, withDryRun } from '../flag-sets.ts'
import { parsePairs, splitPairs } from '../label/pairs.ts'
import { printerOf } from '../printing.ts'
import { RECORD_FLAG } from '../recording.ts'
import { changeAll, containersOf, LOCAL_SERVER_RUN, selectObjects, podSpecOf, setFlags } from './changing.ts'

export const setImage: Command = defineCommand({
  name: 'image',
  use: '(-f FILENAME | TYPE NAME) CONTAINER_NAME_1=CONTAINER_IMAGE_1 ... CONTAINER_NAME_N=CONTAINER_IMAGE_N [options]',
  long: 'Set images of containers, including init containers. The name * selects all containers.',
  examples: `# Set images of two containers of a deployment
kubectl set image deployment/nginx busybox=busybox nginx=nginx:1.9.1

# Set the same image in all containers
kubectl set image daemonset abc *=nginx:1.9.1`,
  flags: { ...setFlags(), ...SELECTOR_FLAG, ...RECORD_FLAG },
  completes: {
    resources: [
      'daemonsets',
      'deployments',
      'pods',
      'cronjobs',
      'replicasets',
      'replicationcontrollers',
      'statefulsets',
    ],
    isSingle: true,
  },
  async run(invocation) {
    const { args, flags } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    const operation = 'image updated'
    await printerOf(invocation, { operation: withDryRun(operation, dryRun) })
    const { resources, pairs } = splitPairs(args, 'image')
    const { set: images } = parsePairs(pairs, 'image')
    const infos = await selectObjects(invocation, resources, { selector: flags.selector })
    const hasFiles = flags.filename.length > 0 || flags.kustomize !== ''
    const problems: [isSo: boolean, text: string][] = [
      [flags.all && flags.selector !== '', 'cannot set --all and --selector at the same time'],
      [
        resources.length === 0 && !hasFiles,
        'one or more resources must be specified as <resource> <name> or <resource>/<name>',
      ],
      [images.size === 0, 'at least one image update is required'],
      [
        images.size > 1 && images.has('*'),
        'all containers are already specified by *, but saw more than one container_name=container_image pairs',
      ],
      [flags.local && dryRun === 'server', LOCAL_SERVER_RUN],
    ]
    const failed = failuresOf(problems.filter(([isSo]) => isSo).map(([, text]) => new KubectlError(text)))
    if (failed !== undefined) throw failed
    const errors: Error[] = []
    await changeAll(invocation, infos, {
      dryRun,
      operation,
      failure: 'failed to patch image update to pod template: ',
      errors,
      change(object) {
        const spec = podSpecOf(object)
        for (const [name, image] of images) {
          const found = containersOf(spec, '*').filter((container) => name === '*' || container.name === name)
          for (const container of found) container.image = image
          if (found.length === 0) errors.push(new KubectlError(`error: unable to find container named "${name}"`))
        }
      },
    })
  },
})
