/** A polyfill of DisposableStack and AsyncDisposableStack for Node 22. */
type Task = () => unknown

export class AsyncDisposableStack {
  #tasks: Task[] = []

  use<T>(value: T): T {
    const { [Symbol.asyncDispose]: dispose, [Symbol.dispose]: disposeNow } = (value ?? {}) as Partial<
      AsyncDisposable & Disposable
    >
    const end = dispose ?? disposeNow
    if (end !== undefined) this.defer(() => end.call(value as AsyncDisposable & Disposable))
    return value
  }

  defer(task: Task): void {
    this.#tasks.push(task)
  }

  adopt<T>(value: T, end: (value: T) => unknown): T {
    this.defer(() => end(value))
    return value
  }

  move(): AsyncDisposableStack {
    const moved = new AsyncDisposableStack()
    ;[moved.#tasks, this.#tasks] = [this.#tasks, []]
    return moved
  }

  async disposeAsync(): Promise<void> {
    const failures: unknown[] = []
    for (let task = this.#tasks.pop(); task !== undefined; task = this.#tasks.pop()) {
      try {
        await task()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures.length === 1 ? failures[0] : new AggregateError(failures)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.disposeAsync()
  }
}

export class DisposableStack {
  readonly #tasks: Task[] = []

  use<T extends Disposable | null | undefined>(value: T): T {
    this.defer(() => value?.[Symbol.dispose]())
    return value
  }

  defer(task: Task): void {
    this.#tasks.push(task)
  }

  dispose(): void {
    for (let task = this.#tasks.pop(); task !== undefined; task = this.#tasks.pop()) task()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}
